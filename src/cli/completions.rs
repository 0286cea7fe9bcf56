//! Options of `nearfar completions`.

use clap_complete::Shell;

/// `nearfar completions`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = COMPLETIONS_NOTES)]
pub struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    pub shell: Shell,
}

const COMPLETIONS_NOTES: &str = "\
\"make install\" puts them where bash, zsh and fish look. Without it, for one user:
  bash   nearfar completions bash > ~/.local/share/bash-completion/completions/nearfar
  zsh    nearfar completions zsh > DIR/_nearfar, where DIR is in $fpath
  fish   nearfar completions fish > ~/.config/fish/completions/nearfar.fish";
