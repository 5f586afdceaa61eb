"""Help of a command that ends with examples, each on a line of its own."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter

from django.core.management.base import DjangoHelpFormatter


class ExamplesFormatter(DjangoHelpFormatter, RawDescriptionHelpFormatter):
    """Django's order of options, and the examples as they were written."""


def show_examples(parser: ArgumentParser, *examples: str) -> None:
    parser.formatter_class = ExamplesFormatter
    parser.epilog = "examples:\n" + "".join(f"  {example}\n" for example in examples)
