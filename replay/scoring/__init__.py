"""A board from a table of forecasts in one step: what each column is, the map that says so, and the replay."""
