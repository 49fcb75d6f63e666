package limits

// ScoreCache bounds the logits that `verify --against` keeps of base models, in the store's folder scores/.
const ScoreCache = 4 << 30

func init() {
	register(Limit{"ScoreCache", "logits of base models that a store keeps", ScoreCache, Bytes,
		"runtime/scores.TestBounded"})
}
