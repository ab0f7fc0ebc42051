"""What came out: `figures` says what each is and should be; `results` keeps and shows a run, `chart` draws it."""
