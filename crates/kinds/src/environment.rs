//! The variables of memkind, read once, by programs that are not set-user-ID only (as secure_getenv(3) does).
//!
//! A bad value is never taken for another: what depends on it is unavailable, and one line on standard error says so.

use crate::node_list::NodeList;
use std::ffi::{CStr, CString, c_char};
use std::sync::OnceLock;

/// Why a value cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue {
    /// The variable.
    pub name: &'static str,
    /// Its value, as far as it is text.
    pub value: String,
    /// What is wrong with it.
    pub why: String,
}

impl std::fmt::Display for BadValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}: {}", self.name, self.value, self.why)
    }
}

/// A value that is not set, good or bad.
pub type Setting<T> = Result<Option<T>, BadValue>;

/// All of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Environment {
    /// `MEMKIND_HBW_NODES`: the nodes of high bandwidth.
    pub hbw_nodes: Setting<NodeList>,
    /// `MEMKIND_DAX_KMEM_NODES`: the nodes of persistent or expanded memory.
    pub dax_nodes: Setting<NodeList>,
    /// `MEMKIND_HBW_THRESHOLD` in bytes per second: claimed bandwidth from which a node is of high bandwidth.
    pub threshold: Setting<f64>,
    /// `MEMKIND_ARENA_NUM_PER_KIND`: checked; our heaps need no such number.
    pub arenas: Setting<u64>,
    /// `MEMKIND_BACKGROUND_THREAD_LIMIT`: checked; we have no background threads.
    pub threads: Setting<u64>,
    /// `MEMKIND_HEAP_MANAGER`: checked.
    pub manager: Setting<()>,
    /// `MEMKIND_HOG_MEMORY=1`: keep freed memory.
    pub hogs: bool,
    /// `MEMKIND_DEBUG=1`: log to standard error.
    pub debug: Setting<bool>,
    /// `NEARFAR_HBW=off`: high bandwidth is the machine's, also in a job of ours.
    pub ours: Setting<bool>,
}

/// What memkind takes without `MEMKIND_HBW_THRESHOLD`, in its unit of MB/s.
pub const DEFAULT_THRESHOLD_MB: u64 = 204_800;

impl Environment {
    /// The variables that `get` knows.
    pub fn parse(get: impl Fn(&str) -> Option<String>) -> Self {
        fn setting<T>(
            get: &impl Fn(&str) -> Option<String>,
            name: &'static str,
            parse: impl Fn(&str) -> Result<T, String>,
        ) -> Setting<T> {
            let Some(value) = get(name) else { return Ok(None) };
            parse(&value).map(Some).map_err(|why| BadValue { name, value, why })
        }
        let number = |least: u64, most: u64| {
            move |text: &str| match text.parse::<u64>() {
                Ok(number) if (least..=most).contains(&number) && text.bytes().all(|b| b.is_ascii_digit()) => Ok(number),
                _ => Err(format!("not a number from {least} to {most}")),
            }
        };
        Self {
            hbw_nodes: setting(&get, "MEMKIND_HBW_NODES", NodeList::parse),
            dax_nodes: setting(&get, "MEMKIND_DAX_KMEM_NODES", NodeList::parse),
            threshold: setting(&get, "MEMKIND_HBW_THRESHOLD", |text| number(0, u64::MAX >> 20)(text).map(|mb| mb as f64 * 1e6)),
            arenas: setting(&get, "MEMKIND_ARENA_NUM_PER_KIND", number(1, i32::MAX as u64)),
            threads: setting(&get, "MEMKIND_BACKGROUND_THREAD_LIMIT", number(0, u32::MAX.into())),
            manager: setting(&get, "MEMKIND_HEAP_MANAGER", |text| match text {
                "JEMALLOC" | "TBB" => Ok(()),
                _ => Err("neither JEMALLOC nor TBB (nearfar uses its own heaps for both)".to_owned()),
            }),
            hogs: get("MEMKIND_HOG_MEMORY").is_some_and(|value| value == "1"),
            debug: setting(&get, "MEMKIND_DEBUG", |text| match text {
                "1" => Ok(true),
                "0" => Ok(false),
                _ => Err("neither 0 nor 1".to_owned()),
            }),
            ours: setting(&get, "NEARFAR_HBW", |text| match text {
                "off" => Ok(false),
                "on" => Ok(true),
                _ => Err("neither on nor off".to_owned()),
            }),
        }
    }

    /// What is wrong, one line each.
    pub fn problems(&self) -> Vec<BadValue> {
        fn of<T>(setting: &Setting<T>) -> Option<BadValue> {
            setting.as_ref().err().cloned()
        }
        let all = [
            of(&self.hbw_nodes),
            of(&self.dax_nodes),
            of(&self.threshold),
            of(&self.arenas),
            of(&self.threads),
            of(&self.manager),
            of(&self.debug),
            of(&self.ours),
        ];
        all.into_iter().flatten().collect()
    }

    /// Those of this process, as they were when first asked for; the lines about bad ones were written then.
    pub fn this() -> &'static Self {
        static THIS: OnceLock<Environment> = OnceLock::new();
        crate::lock::once(&THIS, || {
            let environment = Self::parse(variable);
            environment.problems().iter().for_each(|problem| crate::report::say(&problem.to_string()));
            environment
        })
    }
}

unsafe extern "C" {
    fn secure_getenv(name: *const c_char) -> *const c_char;
}

/// A variable of this process; `None` in set-user-ID programs.
pub fn variable(name: &str) -> Option<String> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name is a C string; what comes back is one in the environment, copied at once.
    let value = unsafe {
        let value = secure_getenv(name.as_ptr());
        if value.is_null() {
            return None;
        }
        CStr::from_ptr(value)
    };
    Some(value.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &'static [(&str, &str)]) -> Environment {
        Environment::parse(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn nothing_set_is_nothing_asked() {
        let environment = with(&[]);
        assert_eq!((environment.problems(), environment.hogs), (Vec::new(), false));
        assert_eq!((environment.hbw_nodes, environment.threshold), (Ok(None), Ok(None)));
    }

    #[test]
    fn good_values() {
        let environment = with(&[
            ("MEMKIND_HBW_NODES", "1"),
            ("MEMKIND_HBW_THRESHOLD", "300"),
            ("MEMKIND_HOG_MEMORY", "1"),
            ("MEMKIND_ARENA_NUM_PER_KIND", "8"),
            ("MEMKIND_DEBUG", "1"),
        ]);
        assert_eq!(environment.problems(), Vec::new());
        assert_eq!((environment.threshold, environment.hogs, environment.debug), (Ok(Some(3e8)), true, Ok(Some(true))));
    }

    #[test]
    fn bad_values_are_said() {
        let environment = with(&[
            ("MEMKIND_HBW_NODES", "fast"),
            ("MEMKIND_HBW_THRESHOLD", "-1"),
            ("MEMKIND_ARENA_NUM_PER_KIND", "0"),
            ("MEMKIND_BACKGROUND_THREAD_LIMIT", "many"),
            ("MEMKIND_HEAP_MANAGER", "HOARD"),
            ("NEARFAR_HBW", "no"),
        ]);
        let problems = environment.problems();
        assert_eq!(problems.len(), 6);
        assert_eq!(problems[0].to_string(), "MEMKIND_HBW_NODES=fast: not a list of NUMA nodes such as 1-3,5");
    }
}
