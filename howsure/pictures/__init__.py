"""Pictures as SVG, drawn from plain data: scales, marks, and the charts of a report."""
