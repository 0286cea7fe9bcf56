//! Names of the places of a profile, from the files that ran: symbols, debug information, code. What is missing (a file that is
//! gone or was built anew, code that was made at run time) is said by module and offset, or not at all.

use crate::code;
use crate::demangle::{spoken, spoken_data};
use crate::image::{Image, Missing, hex};
use nearfar_core::profile::file::Content;
use nearfar_core::profile::names::{Access, Names};
use nearfar_core::profile::process::split;
use nearfar_core::profile::record::{Module, Record};
use nearfar_core::profile::summary::NamedFrame;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

/// What is known of one process.
#[derive(Default)]
struct Space {
    modules: Vec<Module>,
    code: HashMap<u64, (u64, Vec<u8>)>,
    /// The process that forked it: what it mapped is mapped here too.
    parent: Option<usize>,
}

/// A file, and what was found out about it.
type Opened = Result<Image, Missing>;

/// Path and build id of a file.
type FileId = (String, Vec<u8>);

/// Answers from the files on this machine.
#[derive(Default)]
pub struct FileNames {
    spaces: Vec<Space>,
    images: RefCell<HashMap<FileId, Rc<Opened>>>,
    frames: RefCell<HashMap<(usize, u64), Vec<NamedFrame>>>,
    accesses: RefCell<HashMap<(usize, u64), Option<Access>>>,
}

impl FileNames {
    /// For the processes of a profile, numbered as by [`split`].
    pub fn of(content: &Content) -> Self {
        let mut last: HashMap<u32, usize> = HashMap::new();
        let mut spaces = Vec::new();
        for (index, process) in split(content).into_iter().enumerate() {
            let parent = process.start.and_then(|start| last.get(&start.parent)).copied();
            let mut space = Space { parent, ..Space::default() };
            for record in process.records {
                match record {
                    Record::Module(module) => space.modules.push(module.clone()),
                    Record::Code { ip, start, bytes } => drop(space.code.insert(*ip, (*start, bytes.clone()))),
                    _ => {}
                }
            }
            last.insert(process.pid, index);
            spaces.push(space);
        }
        Self { spaces, ..Self::default() }
    }

    /// For one process that runs, number 0.
    pub fn of_modules(modules: Vec<Module>) -> Self {
        Self { spaces: vec![Space { modules, ..Space::default() }], ..Self::default() }
    }

    /// Files that could not be used, for people.
    pub fn problems(&self) -> Vec<String> {
        let images = self.images.borrow();
        let missing = images.iter().filter_map(|((path, _), opened)| Some((path, (**opened).as_ref().err()?)));
        let mut said: Vec<String> = missing
            .map(|(path, why)| match why {
                Missing::Gone => format!("{path} is not here: its functions have no names"),
                Missing::Changed => format!("{path} was rebuilt since the profile was taken: its functions have no names"),
            })
            .collect();
        said.sort();
        said
    }

    /// The module around an address; of several the last, which was mapped where another was before.
    fn module(&self, process: usize, addr: u64) -> Option<&Module> {
        let mut at = Some(process);
        // A chain of forks is never longer than there are processes.
        for _ in 0..=self.spaces.len() {
            let space = self.spaces.get(at?)?;
            let found = space.modules.iter().rev().find(|module| (module.start..module.end).contains(&addr));
            if found.is_some() {
                return found;
            }
            at = space.parent;
        }
        None
    }

    fn image(&self, module: &Module) -> Rc<Opened> {
        let key = (module.path.clone(), module.build_id.clone());
        let mut images = self.images.borrow_mut();
        let open = || if is_file(module) { Image::open(Path::new(&module.path), &module.build_id) } else { Err(Missing::Gone) };
        images.entry(key).or_insert_with(|| Rc::new(open())).clone()
    }

    fn named(&self, process: usize, addr: u64) -> Vec<NamedFrame> {
        let Some(module) = self.module(process, addr) else {
            return vec![NamedFrame { offset: addr, ..NamedFrame::default() }];
        };
        let offset = addr.wrapping_sub(module.bias);
        let at = |symbol: &str, function: String, line: String| NamedFrame {
            module: short(module),
            build_id: hex(&module.build_id),
            offset,
            symbol: symbol.to_owned(),
            function,
            line,
        };
        let opened = self.image(module);
        let Ok(image) = &*opened else { return vec![at("", unnamed(module, offset), String::new())] };
        // A return address is behind the call, perhaps already in the next line or function.
        let call = offset.wrapping_sub(1);
        let symbol = image.symbol(call).map(|symbol| symbol.name.as_str()).unwrap_or_default();
        let mut spots = image.spots(call);
        let outer = spots.pop().unwrap_or_default();
        let name = match (symbol, outer.function.as_str()) {
            ("", "") => unnamed(module, offset),
            ("", function) | (function, _) => spoken(function),
        };
        let mut frames: Vec<NamedFrame> = spots.into_iter().map(|spot| at("", spoken(&spot.function), spot.line)).collect();
        frames.push(at(symbol, name, outer.line));
        frames
    }
}

impl Names for FileNames {
    fn frames(&self, process: usize, addrs: &[u64]) -> Vec<NamedFrame> {
        let mut known = self.frames.borrow_mut();
        addrs.iter().flat_map(|&addr| known.entry((process, addr)).or_insert_with(|| self.named(process, addr)).clone()).collect()
    }

    fn function(&self, process: usize, ip: u64) -> Option<(String, String)> {
        let module = self.module(process, ip)?;
        let offset = ip.wrapping_sub(module.bias);
        let opened = self.image(module);
        let symbol = opened.as_ref().as_ref().ok().and_then(|image| image.symbol(offset));
        let name = symbol.map_or_else(|| unnamed(module, offset), |symbol| spoken(&symbol.name));
        Some((name, short(module)))
    }

    fn spoken(&self, symbol: &str) -> String {
        spoken_data(symbol)
    }

    fn access(&self, process: usize, ip: u64) -> Option<Access> {
        if let Some(known) = self.accesses.borrow().get(&(process, ip)) {
            return *known;
        }
        let whole = self.module(process, ip).and_then(|module| {
            let opened = self.image(module);
            let (bytes, start) = opened.as_ref().as_ref().ok()?.function_code(ip.wrapping_sub(module.bias))?;
            code::access(&bytes, start.wrapping_add(module.bias), ip, true)
        });
        let recorded = || {
            let (start, bytes) = self.spaces.get(process)?.code.get(&ip)?;
            code::access(bytes, *start, ip, false)
        };
        let access = whole.or_else(recorded);
        self.accesses.borrow_mut().insert((process, ip), access);
        access
    }

    fn inner_loop(&self, process: usize, ip: u64) -> Option<u64> {
        let module = self.module(process, ip)?;
        let opened = self.image(module);
        let (bytes, start) = opened.as_ref().as_ref().ok()?.function_code(ip.wrapping_sub(module.bias))?;
        code::inner_loop(&bytes, start.wrapping_add(module.bias), ip)
    }
}

/// Not `[vdso]` and the like, and not a file that was deleted while it was mapped.
fn is_file(module: &Module) -> bool {
    module.path.starts_with('/') && !module.path.ends_with(" (deleted)")
}

fn short(module: &Module) -> String {
    let path = module.path.trim_end_matches(" (deleted)");
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

fn unnamed(module: &Module, offset: u64) -> String {
    format!("{}+{offset:#x}", short(module))
}

#[cfg(test)]
mod tests;
