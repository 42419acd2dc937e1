"""The modules of benchmarks/report. They need only Python's standard library.

command_line    options, and the work for each
comparisons     the table of comparisons
rounds          runs a comparison: all sides in turn, round by round, within its share of the time
processes       starts programs, asks them for measurements, reads their figures, ends them
pytorch         finds Pythons that have torch, and the fastest variant of each script
machine         describes this machine and its libraries
pairs           the interval of a median, and the verdict from it
quality         seconds to a given quality
against         compares two checkouts
results         compares two results by their medians
page            the parts of a page; markdown, html_page and plots write it
"""
