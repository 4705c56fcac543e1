"""Many planners on one nearly full cluster, over HTTP, on one PostgreSQL: does any rule break?"""
