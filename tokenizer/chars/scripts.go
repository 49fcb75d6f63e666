package chars

import (
	_ "embed"
	"sync"
)

// scriptRuns are the scripts of the reference (Unicode 9, with Kana as Han), with the numbers of
// testdata/gen/tokenizers/scripts.py. Script 0 joins any other.
//
//go:embed scripts.bin
var scriptRuns []byte

// Scripts is the table of scripts.
var Scripts = sync.OnceValue(func() *propertyTable { return newPropertyTable(scriptRuns) })
