package types

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// NGrams describes embeddings of n-grams: hashes of a token and of those before it choose rows of a table, which a
// layer adds to the residual streams.
type NGrams struct {
	Size    int // tokens of the largest n-gram; there are vectors of all sizes from 2
	Heads   int // hashes of an n-gram of each size
	Dim     int // of the vectors of all hashes of a row
	Kernel  int // of the convolution of rows that are Size apart
	EOS     int32
	Shards  int          // of published tables
	Tables  []NGramTable // by layer, of those that have one
	Divisor int          // of the number of rows of a table
}

// NGramTable is the table of a layer. The rows of its hashes follow each other.
type NGramTable struct {
	Layer int
	// Rows are the numbers of rows, all prime, by hash: those of 2-grams, then of 3-grams.
	Rows []int64
	// Multipliers are odd factors of the tokens of an n-gram, the last token's first. No product with a token overflows an
	// int64.
	Multipliers []int64
	Total       int64 // rows of the table, with those that no hash chooses
}

// Hashes returns the number of hashes of a row.
func (g NGrams) Hashes() int { return (g.Size - 1) * g.Heads }

// Tail returns the number of rows before the next one that the convolution reads.
func (g NGrams) Tail() int { return (g.Kernel - 1) * g.Size }

// table returns the table of a layer, or nil.
func (g NGrams) table(layer int) *NGramTable {
	if i := slices.IndexFunc(g.Tables, func(t NGramTable) bool { return t.Layer == layer }); i >= 0 {
		return &g.Tables[i]
	}
	return nil
}

const (
	nGramTable = ".ngram_embedding.weight"

	maxNGram     = 16
	maxHashes    = 1 << 10 // of all layers
	maxTableBase = 1 << 30
	maxShards    = 1 << 14 // of all layers
	maxTableRows = math.MaxInt32
	seedStep     = 10007 // from a layer's seed to the next one's
)

// parseNGrams reads the embeddings of n-grams. All else that a table needs follows from the configuration.
func (m *Qwen4Exp) parseNGrams(o config.Object) {
	ids := o.Integers("ple_layer_ids", config.MaxLayers, 1, m.Layers)
	if len(ids) == 0 || o.Failed() != nil {
		return
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	g := NGrams{
		Size:    o.Integer("ngram_size", 3, 2, maxNGram),
		Heads:   o.Integer("heads_per_ngram", 8, 1, maxHashes),
		Dim:     o.Integer("ple_embed_dim", m.Hidden, 1, config.MaxWidth),
		Kernel:  o.Integer("ple_conv_kernel_size", 4, 2, config.MaxTaps),
		Shards:  o.Integer("split_ngram_parts", 512, 1, maxShards),
		Divisor: o.Integer("make_ngram_vocab_size_divisible_by", 128, 1, maxTableBase),
	}
	base, seed := o.Integer("ngram_vocab_size_base", 20_000_000, 1, maxTableBase), o.Integer("seed", 1234, 0, maxTableBase)
	end := o.Tokens("eos_token_id", nil) // the text model's, whatever the whole model's is
	switch {
	case len(end) == 0:
		o.Fail("eos_token_id", "name a token, at which n-grams end")
	case len(ids)*g.Hashes() > maxHashes:
		o.Fail("heads_per_ngram", fmt.Sprintf("leave at most %d hashes to all layers", maxHashes))
	case g.Dim%g.Hashes() != 0:
		o.Fail("ple_embed_dim", fmt.Sprintf("be a multiple of the %d hashes of a row", g.Hashes()))
	case len(ids)*g.Shards > maxShards:
		o.Fail("split_ngram_parts", fmt.Sprintf("leave at most %d shards to all layers", maxShards))
	}
	if o.Failed() != nil {
		return
	}
	g.EOS = end[0]
	next := int64(base)
	for i, id := range ids {
		if m.Full[id-1] {
			o.Fail("ple_layer_ids", fmt.Sprintf("name layers with linear attention only (%d has none)", id))
			return
		}
		t := NGramTable{Layer: id - 1, Multipliers: multipliers(m.Vocab, g.Size, uint64(seed+seedStep*i))}
		for range g.Hashes() {
			next = prime(next)
			t.Rows = append(t.Rows, next)
			t.Total += next
			next++
		}
		t.Total = (t.Total + int64(g.Divisor) - 1) / int64(g.Divisor) * int64(g.Divisor)
		if t.Total > maxTableRows {
			o.Fail("ngram_vocab_size_base", fmt.Sprintf("leave at most %d rows to a table (it leaves %d)",
				int64(maxTableRows), t.Total))
			return
		}
		g.Tables = append(g.Tables, t)
	}
	m.NGrams = g
}

// prime returns the smallest prime that is at least n.
func prime(n int64) int64 {
	for ; !big.NewInt(n).ProbablyPrime(0); n++ { // exact below 2^64
	}
	return n
}

// multipliers returns n random odd numbers from a seed, which multiply tokens of a vocabulary without an overflow.
func multipliers(vocab, n int, seed uint64) []int64 {
	half := max(uint64(math.MaxInt64)/uint64(max(vocab, 1))/2, 1)
	list := make([]int64, n)
	for i := range list {
		list[i] = int64(2*(mixed(seed+uint64(i+1)*golden)%half) + 1)
	}
	return list
}

// golden is 2^64 divided by the golden ratio.
const golden = 0x9E3779B97F4A7C15

// mixed is a step of SplitMix64: https://prng.di.unimi.it/splitmix64.c
func mixed(x uint64) uint64 {
	x += golden
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// nGrams adds the embeddings of n-grams of a layer. The rows of their table are divided: each rank adds up those that
// it has. Published tables are in shards, all but the last of the same size.
func (m *Qwen4Exp) nGrams(t *table.Table, name string, g NGramTable) {
	n, all, hidden, kernel := m.NGrams, int64(m.Streams)*int64(m.Hidden), int64(m.Hidden), int64(m.NGrams.Kernel)
	dim := int64(n.Dim) / int64(n.Hashes())
	s := t.Add(name+".ple_embedding"+nGramTable, table.Outputs, g.Total, dim)
	s.Layout = table.Fused
	form := table.Form{Layout: table.Unfused, Make: table.Stack, Count: 1}
	size := (g.Total + int64(n.Shards) - 1) / int64(n.Shards)
	for i := int64(0); i*size < g.Total; i++ {
		form.Names = append(form.Names, name+".ple_embedding.ngram_embedding.shard_"+strconv.FormatInt(i, 10)+".weight")
		form.Shapes = append(form.Shapes, []int64{min(size, g.Total-i*size), dim})
	}
	s.Forms = []table.Form{form}
	t.Linear(name+".key_proj", all, int64(n.Dim), false, table.Whole)
	t.Linear(name+".value_proj", hidden, int64(n.Dim), false, table.Whole)
	for _, norm := range []string{".norm_key", ".norm_query", ".norm_conv"} {
		t.Norm(name+norm, all, true)
	}
	conv := t.Add(name+".conv1d.weight", table.Whole, all, 1, kernel)
	conv.Reshape = [][]int64{{all, kernel, 1}, {all, kernel}}
}
