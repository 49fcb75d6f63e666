// Package declared knows where a config.json says how a checkpoint is quantized, and removes that.
package declared

import (
	"bytes"
	"encoding/json"
)

// Keys of config.json, or of its text_config.
const (
	MLX         = "quantization"
	HF          = "quantization_config"
	Compression = "compression_config" // the name in the first checkpoints of compressed-tensors
)

// IsObject reports whether a value is a JSON object.
func IsObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{'
}
