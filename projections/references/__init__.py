"""What a forecast is compared with: nothing, a uniform forecast, the other members, or their consensus."""
