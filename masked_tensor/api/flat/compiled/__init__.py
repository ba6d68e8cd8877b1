"""A flat module in compiled code: what Dynamo follows, and what are nodes of the graph."""
