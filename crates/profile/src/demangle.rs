//! Names as people know them: demangled, without what compilers append.

use std::borrow::Cow;

/// What compilers append to the names of pieces and copies of a function.
const PIECES: [&str; 6] = [".constprop", ".isra", ".part", ".cold", ".lto_priv", ".localalias"];

/// A symbol as people say it.
pub fn spoken(symbol: &str) -> String {
    let mut name = symbol;
    while let Some(at) = PIECES.iter().filter_map(|piece| name.find(piece)).min().filter(|&at| at > 0) {
        name = &name[..at];
    }
    if let Some(rest) = name.strip_prefix("__")
        && let Some((module, procedure)) = rest.split_once("_MOD_")
    {
        return format!("{module}::{procedure}");
    }
    if name == "MAIN__" {
        return "main program".to_owned();
    }
    let plain = addr2line::demangle_auto(Cow::Borrowed(name), None);
    if plain != name {
        return without_allocators(&without_parameters(&plain));
    }
    // Fortran's external procedures; names that begin so are the C library's own.
    match name.strip_suffix('_') {
        Some(procedure) if !name.starts_with('_') && !procedure.is_empty() && !name.contains('.') => procedure.to_owned(),
        _ => name.to_owned(),
    }
}

/// The symbol of an array as people say it: also without the number that compilers append to those of one procedure.
pub fn spoken_data(symbol: &str) -> String {
    match symbol.rsplit_once('.') {
        Some((name, number)) if !name.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => spoken(name),
        _ => spoken(symbol),
    }
}

/// Where the bracket that opens at `at` closes.
fn closing(name: &str, at: usize) -> Option<usize> {
    let (open, close) = match name.as_bytes().get(at)? {
        b'(' => (b'(', b')'),
        _ => (b'<', b'>'),
    };
    let mut depth = 0;
    for (place, &byte) in name.as_bytes().iter().enumerate().skip(at) {
        depth += i32::from(byte == open) - i32::from(byte == close);
        if depth == 0 {
            return Some(place);
        }
    }
    None
}

/// `void f<int>(double, long) const` -> `f<int>`.
fn without_parameters(name: &str) -> String {
    if name.contains("operator") || name.starts_with('<') {
        return name.to_owned();
    }
    let mut end = name.len();
    let mut begin = 0;
    let mut at = 0;
    while let Some(&byte) = name.as_bytes().get(at) {
        match byte {
            b'(' | b'<' => {
                let Some(close) = closing(name, at) else { break };
                if byte == b'(' && !name[at..].starts_with("(anonymous") && !name[close..].starts_with(")::") {
                    end = at;
                    break;
                }
                at = close;
            }
            b' ' => begin = at + 1,
            _ => {}
        }
        at += 1;
    }
    name[begin.min(end)..end].to_owned()
}

/// `vector<double, std::allocator<double> >` -> `vector<double>`.
fn without_allocators(name: &str) -> String {
    let mut name = name.to_owned();
    while let Some(at) = name.find(", std::allocator<") {
        let Some(close) = closing(&name, at + ", std::allocator".len()) else { break };
        let spaces = name[close + 1..].len() - name[close + 1..].trim_start_matches(' ').len();
        name.replace_range(at..close + 1 + spaces, "");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_four_languages() {
        for (symbol, name) in [
            ("main", "main"),
            ("__wave_MOD_allocate_wave", "wave::allocate_wave"),
            ("dgemm_", "dgemm"),
            ("MAIN__", "main program"),
            ("__libc_start_main", "__libc_start_main"),
            ("_exit", "_exit"),
            ("sweep.constprop.0", "sweep"),
            ("sweep.part.0.cold", "sweep"),
            ("__wave_MOD_sweep._omp_fn.0", "wave::sweep._omp_fn.0"),
            ("_ZN9LAMMPS_NS6Memory6createIdEEPT_RS3_iPKc", "LAMMPS_NS::Memory::create<double>"),
            ("_ZNSt6vectorIdSaIdEEC1EmRKS0_", "std::vector<double>::vector"),
            ("_ZN12_GLOBAL__N_13runEv", "(anonymous namespace)::run"),
            ("_ZN5alloc3vec12Vec$LT$T$GT$4push17h0123456789abcdefE", "alloc::vec::Vec<T>::push"),
        ] {
            assert_eq!(spoken(symbol), name, "{symbol}");
        }
        for (symbol, name) in [
            ("big.0", "big"),
            ("__wave_MOD_field", "wave::field"),
            ("fields_", "fields"),
            ("_ZN4grid5tableE", "grid::table"),
            ("_ZL5cells", "cells"),
            ("table", "table"),
            ("runtime.mheap_", "runtime.mheap_"),
        ] {
            assert_eq!(spoken_data(symbol), name, "{symbol}");
        }
        for noise in ["_Z", "_ZN", "(", "_R", "", "_", "__MOD_", "a<b(c", ", std::allocator<"] {
            let _ = (spoken(noise), without_parameters(noise), without_allocators(noise));
        }
    }
}
