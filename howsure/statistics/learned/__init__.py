"""The learned measure: an uncertainty that knows the predicted class and all other measures."""
