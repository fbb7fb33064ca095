"""The model of the labels: the softmax, corrected for each class by a few coefficients."""
