package config

const MaxStreams = 64

// Bounds of a configuration's values. They are several times the published ones, and small enough that the size of a
// model in bits fits an int64.
const (
	MaxVocab   = 1 << 26
	MaxWidth   = 1 << 20 // hidden and intermediate sizes
	MaxLayers  = 1 << 12
	MaxHeads   = 1 << 12
	MaxHeadDim = 1 << 12
	MaxContext = 1 << 30
)

// MaxTaps is the largest convolution kernel that the engine runs.
const MaxTaps = 8
