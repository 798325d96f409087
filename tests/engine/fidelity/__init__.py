"""What a program computes on our ranks equals what PyTorch computes elsewhere."""
