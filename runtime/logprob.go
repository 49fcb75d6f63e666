package runtime

// LogProb is the log-probability of a token by the model's own logits: before bias, penalties, masks and temperature.
type LogProb struct {
	ID      int32       `json:"i"`
	LogProb float32     `json:"l"`           // natural logarithm
	Top     []TokenProb `json:"t,omitempty"` // the most likely tokens at this position, in descending order
}

// TokenProb is a token and its log-probability.
type TokenProb struct {
	ID      int32   `json:"i"`
	LogProb float32 `json:"l"`
}

// MostTopLogProbs bounds Request.TopLogProbs.
const MostTopLogProbs = 100
