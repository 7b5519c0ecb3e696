"""The field's own formats: Metaculus's data download, hubverse hubs, ForecastBench's sets, markets."""
