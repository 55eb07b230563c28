"""What happened: events, the driver state they imply, and the order between them."""
