"""The page: reports and kill matrices as one HTML file that needs nothing beside it."""
