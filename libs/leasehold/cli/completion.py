"""The command `leasehold completion`: scripts by which bash, zsh and fish complete its words."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Final, NamedTuple

from leasehold.cli.command import SUMMARIES, Subparsers, add, module_of
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.settings.client import ClientSettings

SHELLS: Final = ("bash", "zsh", "fish")
HELP: Final = """\
Prints a script for a shell. For the shell that runs:

  source <(leasehold completion bash)
  source <(leasehold completion zsh)
  leasehold completion fish | source

For all that come: leasehold completion bash > ~/.local/share/bash-completion/completions/leasehold,
leasehold completion zsh > a folder of $fpath as _leasehold, leasehold completion fish >
~/.config/fish/completions/leasehold.fish. Write it anew after an upgrade."""


class Words(NamedTuple):
    """What may be typed behind a command, or an action of one (`path`, with a blank between).
    `actions` and `options` with their help; `choices`: of what follows an option, () for a value
    that is not known, so that files are offered; `of_argument`: of the arguments."""

    path: str
    actions: Mapping[str, str]
    options: Mapping[str, str]
    choices: Mapping[str, tuple[str, ...]]
    of_argument: tuple[str, ...]


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "completion", run, HELP)
    parser.add_argument("shell", choices=SHELLS, help="whose words they are")


def run(args: argparse.Namespace, _: ClientSettings, output: Output) -> int:
    script = make_script(args.shell)
    if output.as_json:
        output.json({"shell": args.shell, "script": script})
    else:
        output.data(script.encode())
    return ExitCode.OK


def make_script(shell: str) -> str:
    """Return the script for one of SHELLS."""
    words = list(all_words())
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](words)


# ---------------------------------------------------------------- what there is


def all_words() -> Iterator[Words]:
    """Yield the words of `leasehold` itself, of each command and of each action."""
    yield Words("", SUMMARIES, {"--help": "", "--version": ""}, {}, ())
    for name in SUMMARIES:
        root = argparse.ArgumentParser(prog="leasehold")
        subparsers = root.add_subparsers()
        import_module(module_of(name)).register(subparsers)
        yield from _words_of(name, subparsers.choices[name])


def _words_of(path: str, parser: argparse.ArgumentParser) -> Iterator[Words]:
    # argparse has no public way to ask for them.
    actions = parser._actions  # noqa: SLF001
    below = {
        name: made
        for each in actions
        if isinstance(each, argparse._SubParsersAction)  # noqa: SLF001
        for name, made in each.choices.items()
    }
    helps = {
        choice.dest: choice.help or ""
        for each in actions
        if isinstance(each, argparse._SubParsersAction)  # noqa: SLF001
        for choice in each._choices_actions  # noqa: SLF001
    }
    options: dict[str, str] = {}
    choices: dict[str, tuple[str, ...]] = {}
    of_argument: list[str] = []
    for each in actions:
        if isinstance(each, argparse._SubParsersAction) or each.help == argparse.SUPPRESS:  # noqa: SLF001
            continue
        given = tuple(map(str, each.choices or ()))
        if not each.option_strings:
            of_argument += given
        for option in each.option_strings:
            options[option] = each.help or ""
            if each.nargs != 0:
                choices[option] = given
    yield Words(
        path, {name: helps.get(name, "") for name in below}, options, choices, tuple(of_argument)
    )
    for name, made in below.items():
        yield from _words_of(f"{path} {name}", made)


# ---------------------------------------------------------------- scripts

_HEAD: Final = "# Completion of leasehold, written by leasehold completion {}.\n"
_BASH: Final = """\
_leasehold() {
    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"
    local path="" word words="" n
    for ((n = 1; n < COMP_CWORD; n++)); do
        word="${COMP_WORDS[n]}"
        case "|$(_leasehold_actions "$path")|" in
            *"|$word|"*) path="${path:+$path }$word" ;;
        esac
    done
    if words="$(_leasehold_choices "$path" "$before")"; then
        COMPREPLY=()
        [ -z "$words" ] && return
    elif [[ "$current" == -* ]]; then
        words="$(_leasehold_options "$path")"
    else
        words="$(_leasehold_actions "$path")"
        words="${words//|/ } $(_leasehold_arguments "$path")"
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}
"""


def _bash(words: Sequence[Words]) -> str:
    parts = [_HEAD.format("bash"), *_tables(words), _BASH]
    # Where nothing of it fits, files do.
    return "\n".join([*parts, "complete -o default -F _leasehold leasehold\n"])


def _tables(words: Sequence[Words]) -> Iterator[str]:
    """Yield the functions that bash and zsh look up what may be typed by."""
    for name, lines in (
        ("actions", [(w.path, "|".join(w.actions)) for w in words if w.actions]),
        ("options", [(w.path, " ".join(w.options)) for w in words]),
        ("arguments", [(w.path, " ".join(w.of_argument)) for w in words if w.of_argument]),
    ):
        cases = "\n".join(f'        "{path}") echo "{said}" ;;' for path, said in lines)
        yield f'_leasehold_{name}() {{\n    case "$1" in\n{cases}\n    esac\n}}\n'
    pairs = [(w.path, option, said) for w in words for option, said in w.choices.items()]
    cases = "\n".join(f'        "{p} {o}") echo "{" ".join(said)}" ;;' for p, o, said in pairs)
    more = "        *) return 1 ;;"
    yield f'_leasehold_choices() {{\n    case "$1 $2" in\n{cases}\n{more}\n    esac\n}}\n'


_ZSH: Final = """\
_leasehold() {
    local current="${words[CURRENT]}" before="${words[CURRENT-1]}" path_of="" found="" n
    for ((n = 2; n < CURRENT; n++)); do
        case "|$(_leasehold_actions "$path_of")|" in
            *"|${words[n]}|"*) path_of="${path_of:+$path_of }${words[n]}" ;;
        esac
    done
    if found="$(_leasehold_choices "$path_of" "$before")"; then
        :
    elif [[ "$current" == -* ]]; then
        found="$(_leasehold_options "$path_of")"
    else
        found="$(_leasehold_actions "$path_of")"
        found="${found//|/ } $(_leasehold_arguments "$path_of")"
    fi
    found="${found## }"
    if [[ -n "${found// /}" ]]; then
        compadd -- ${=found} || _files
    else
        _files
    fi
}

if [[ "${funcstack[1]}" == "_leasehold" ]]; then
    _leasehold "$@"
else
    compdef _leasehold leasehold
fi
"""


def _zsh(words: Sequence[Words]) -> str:
    return "\n".join(["#compdef leasehold", _HEAD.format("zsh"), *_tables(words), _ZSH])


def _fish(words: Sequence[Words]) -> str:
    lines = [_HEAD.format("fish")]
    for each in words:
        where = _fish_condition(each)
        for name, help_ in each.actions.items():
            lines.append(f"complete -c leasehold -f {where} -a {name}{_fish_help(help_)}")
        for option, help_ in each.options.items():
            kind, name = ("-l", option[2:]) if option.startswith("--") else ("-s", option[1:])
            line = f"complete -c leasehold {where} {kind} {name}{_fish_help(help_)}"
            if option in each.choices:
                given = " ".join(each.choices[option])
                line += f" -x -a '{given}'" if given else " -r"
            lines.append(line)
        if each.of_argument:
            given = " ".join(each.of_argument)
            lines.append(f"complete -c leasehold -f {where} -a '{given}'")
    return "\n".join(lines) + "\n"


def _fish_condition(words: Words) -> str:
    if not words.path:
        return "-n __fish_use_subcommand"
    seen = [f"__fish_seen_subcommand_from {name}" for name in words.path.split()]
    if words.actions:
        seen.append(f"not __fish_seen_subcommand_from {' '.join(words.actions)}")
    return f"-n '{'; and '.join(seen)}'"


def _fish_help(text: str) -> str:
    said = text.replace("%%", "%").replace("\\", "").replace("'", "’").partition(";")[0]
    return f" -d '{said:.60}'" if said else ""
