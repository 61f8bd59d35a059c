//! `vcctl completion`: scripts that let a shell complete commands, flags and names, by asking the tool itself.

use crate::Tool;
use crate::completion::HIDDEN;
use crate::failure::Failure;
use crate::output::Out;
use std::io::Write as _;

/// Print a script that lets a shell complete commands, flags, and names of jobs and queues
///
/// bash: source <(vcctl completion bash), in ~/.bashrc
/// zsh: source <(vcctl completion zsh), in ~/.zshrc
/// fish: vcctl completion fish > ~/.config/fish/completions/vcctl.fish
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct CompletionArgs {
    /// The shell
    shell: Shell,
}

/// A shell.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Shell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

const BASH: &str = r#"_volcano_complete() {
    local candidate
    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        COMPREPLY+=("$candidate")
    done < <(
        "${COMP_WORDS[0]}" HIDDEN "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null |
            if [[ ${COMP_WORDS[COMP_CWORD]} == "=" || ${COMP_WORDS[COMP_CWORD - 1]} == "=" ]]; then
                sed 's/^--[^=]*=//'
            else
                cat
            fi
    )
}
complete -o default -F _volcano_complete TOOLS
"#;

const ZSH: &str = r#"autoload -Uz compinit && (( ${+functions[compdef]} )) || compinit
_volcano_complete() {
    local -a candidates
    local line
    while IFS= read -r line; do
        candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done < <("${words[1]}" HIDDEN "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( ${#candidates} )); then
        _describe 'values' candidates
    else
        _files
    fi
}
compdef _volcano_complete TOOLS
"#;

const FISH: &str = r#"function __volcano_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    $words[1] HIDDEN $words[2..] "$current" 2>/dev/null
end
for tool in TOOLS
    complete -c $tool -a '(__volcano_complete)'
end
"#;

/// Runs the command.
pub fn run(args: &CompletionArgs, out: &mut Out) -> Result<u8, Failure> {
    out.write_all(script(args.shell).as_bytes())?;
    Ok(0)
}

fn script(shell: Shell) -> String {
    let text = match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
    };
    let names = Tool::ALL.map(Tool::name);
    let tools = [names.as_slice(), &[crate::KUBECTL_PLUGIN]].concat().join(" ");
    text.replace("HIDDEN", HIDDEN).replace("TOOLS", &tools)
}
