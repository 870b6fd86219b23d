"""Jobs of many ranks: turn a trace per rank into tables, and query the tables.

`ingest` maps each rank's trace to Parquet on any `concurrent.futures.Executor`; `summary` and `difference`
read the tables with DuckDB. The package needs the extra ``fleet``.
"""
