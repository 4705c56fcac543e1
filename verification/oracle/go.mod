// Only names the module: each version is built with a file of its own, such as -modfile=1.36.mod.
module moorage/oracle

go 1.26.0
