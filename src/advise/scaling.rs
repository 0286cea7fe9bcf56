//! The run that is asked about beside the profiled one: other threads, more ranks on the machine.

use crate::cli::advise::AdviseArgs;
use crate::exit::refuse;
use crate::files::nfprof;
use nearfar_core::advise::demand::Demands;
use nearfar_core::advise::machine::Machine;
use nearfar_core::advise::samples::sample;
use nearfar_core::advise::scaling::Scaling;
use nearfar_core::profile::summary::Summary;

/// Nine in ten programs are taken to compute within this factor of what the peaks of two kinds of cores say.
const CORE_DOUBT: f64 = 2.0;

/// What runs, and how it differs from what was profiled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wide {
    /// What the profiled ranks are of all that run: of the machine they get this part.
    pub part: f64,
    /// Ranks that run.
    pub ranks: u32,
    /// Threads that were profiled, of all profiled ranks together.
    pub profiled: f64,
    /// Threads that run, of all ranks together.
    pub threads: f64,
}

/// The machine as the profiled ranks find it: divided among all ranks, with as many threads as are asked for.
///
/// # Errors
/// A refusal: there is less of the machine, or profiles do not belong together.
pub fn scaled(args: &AdviseArgs, summary: &Summary, machine: &mut Machine) -> anyhow::Result<Wide> {
    let profiled_ranks = args.files.len() as f64;
    let ranks = args.ranks.map_or(profiled_ranks, f64::from);
    let part = profiled_ranks / ranks;
    let profiled = Demands::of(summary).threads();
    // Of the profiled ranks together, as their times are.
    let threads = args.threads.map_or(profiled, |threads| f64::from(threads) * profiled_ranks);
    let all = threads / part;
    let wide = Wide { part, ranks: ranks as u32, profiled, threads: all };
    if (args.threads.is_some() || args.ranks.is_some()) && machine.cpus > 0 && all > f64::from(machine.cpus) {
        let (cores, cpus, name) = (machine.cores, machine.cpus, &machine.name);
        let asked = match (args.threads, args.ranks) {
            (Some(threads), Some(ranks)) => format!("--threads {threads} for each of --ranks {ranks}"),
            (Some(threads), None) => format!("--threads {threads}"),
            (None, ranks) => format!("--ranks {} with the {profiled} threads of the profile", ranks.unwrap_or(1)),
        };
        return Err(refuse(format_args!(
            "{asked}: that is {all:.0} threads, but {name} has {cores} cores with {cpus} hardware threads; write at most {cpus} in all"
        )));
    }
    if part > 1.0 {
        return Err(refuse(format_args!(
            "--ranks {ranks}: {profiled_ranks} profiles were given, one for each rank; write at least {profiled_ranks}, or name fewer profiles"
        )));
    }
    if !args.scaling.is_empty() && args.files.len() > 1 {
        return Err(refuse(
            "--scaling goes with one profile: those of several ranks cannot be fitted; name the profile of one rank",
        ));
    }
    let core = machine.scaling.core;
    *machine = machine.part(part);
    let mut others = Vec::new();
    for path in &args.scaling {
        let other = nfprof::read(std::slice::from_ref(path))?;
        if program_name(&other.program) != program_name(&summary.program) {
            return Err(refuse(format_args!(
                "--scaling {}: that is a profile of {}, not of {}; name profiles of the same program and input with other numbers of threads",
                path.display(),
                other.program,
                summary.program
            )));
        }
        others.push(sample(&other, machine));
    }
    let scaling = match others.is_empty() {
        true => Scaling::extrapolated(profiled, threads),
        false => {
            let base = sample(summary, machine);
            let found = Scaling::fitted(base, &others, threads);
            if found.fitted.is_none() {
                return Err(refuse(format_args!(
                    "--scaling: all these profiles ran with {profiled} threads, so they do not tell how the program scales; profile it with \
                     another number of threads (OMP_NUM_THREADS)"
                )));
            }
            found
        }
    };
    let doubt = if core == 1.0 { scaling.doubt } else { scaling.doubt * CORE_DOUBT };
    let cores = if machine.cores > 0 { (f64::from(machine.cores) * part).max(1.0) } else { f64::INFINITY };
    machine.scaling = Scaling { core, doubt, part, cores, ..scaling };
    machine.notes.extend(notes(args, machine, &wide));
    Ok(wide)
}

fn program_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What was assumed of threads, cores and ranks.
fn notes(args: &AdviseArgs, machine: &Machine, wide: &Wide) -> Vec<String> {
    let mut notes = Vec::new();
    let Wide { profiled, threads, .. } = *wide;
    let scaling = &machine.scaling;
    if let Some(fitted) = scaling.fitted {
        notes.push(format!(
            "{} profiles, fitted: {:.0} % of what one thread computes is not divided among threads; traffic is {:.2} times the profile's",
            1 + args.scaling.len(),
            100.0 * fitted.alone,
            fitted.traffic
        ));
    } else if scaling.threads != scaling.profiled {
        notes.push(format!(
            "from {:.0} to {:.0} threads is extrapolated from one profile, for computing within a factor of {:.2}; a second profile with another \
             number of threads (--scaling FILE) makes it surer",
            scaling.profiled, scaling.threads, scaling.doubt
        ));
    }
    if scaling.fitted.is_none() && profiled <= 1.0 && scaling.threads > 1.0 {
        notes.push(
            "one thread was profiled: all that it does is taken to be divided among threads, also what cannot be; --scaling FILE tells how much \
             that is"
                .to_owned(),
        );
    }
    if scaling.threads > scaling.cores {
        notes.push(format!(
            "{threads:.0} threads run on {} cores of {}: they are taken to compute as much as one for each core",
            machine.cores, machine.name
        ));
    }
    if args.home.is_some() && args.machine.is_some() && scaling.core == 1.0 && args.home != args.machine {
        notes.push(format!(
            "a core of {} is taken to be as fast as one of the profile's machine: the peaks of both are not known, or alike",
            machine.name
        ));
    }
    if args.threads.is_none() && f64::from(machine.cores) > 1.5 * threads {
        notes.push(format!(
            "the profile has {profiled:.0} threads, and {} has {} cores: few threads do not fill its memory; --threads {} predicts a run that \
             uses them",
            machine.name,
            machine.cores,
            (machine.cores / wide.ranks.max(1)).max(1)
        ));
    }
    if scaling.core != 1.0 {
        notes.push(format!(
            "a core of {} is taken to need {:.2} times as long for the same arithmetic, by the peaks of both; real programs differ by up to a \
             factor of {CORE_DOUBT}",
            machine.name, scaling.core
        ));
    }
    notes
}
