"""`hookonce completion`: the script that lets a shell complete commands, options, sources, handlers and ids."""

import click
from click.shell_completion import get_completion_class

_VARIABLE = "_HOOKONCE_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell; write it to where that shell looks for one.

    bash: ~/.local/share/bash-completion/completions/hookonce · zsh: a file _hookonce in a folder of $fpath ·
    fish: ~/.config/fish/completions/hookonce.fish. Or at once, in bash: source <(hookonce completion bash)
    """
    made = get_completion_class(shell)
    if made is None:
        raise click.ClickException(f"this version of click completes no {shell}")
    click.echo(made(context.find_root().command, {}, "hookonce", _VARIABLE).source())
