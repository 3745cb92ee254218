"""The grammar behind the everyday French-English corpus: lexicon, morphology, patterns and splits.

Run tools/make-corpus to write the files; nothing here reads the clock, the network or the environment.
"""
