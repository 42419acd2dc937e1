"""What benchmarks/report is made of. Python's standard library is all it needs.

command_line    what it can be told, and what it does then
comparisons     what is compared with what, as data
rounds          runs a comparison: all sides in turn, round by round, within its share of the time
processes       starts programs, asks them, reads their figures, ends them
pytorch         Pythons that have torch, and which of its ways is the fastest
machine         what this machine and its libraries are
pairs           the interval of a median, and what it says
quality         seconds to a stated quality
against         two checkouts: what got slower
results         two results: the same, weaker
page            what a page is made of; markdown, html_page and plots write it
"""
