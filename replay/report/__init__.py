"""Reports: pictures of boards, as Vega-Lite specifications, and one page that shows them."""
