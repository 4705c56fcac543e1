"""JSON that is read strictly and in steps, and the patches and field managers of decoded objects."""
