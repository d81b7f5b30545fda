"""From EC2's signs that it takes a node away to replacements that load before it is gone."""
