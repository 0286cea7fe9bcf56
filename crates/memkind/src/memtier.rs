//! ONE table of the functions of memkind_memtier.h.
