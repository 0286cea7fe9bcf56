//! libmemkind.so.
