package arch

import (
	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// Untie returns a config.json whose model has an output head of its own, and the model.
func Untie(config []byte) ([]byte, Model, error) {
	config = setKeys(pyjson.Plain(config), map[string][]byte{"tie_word_embeddings": []byte("false")})
	m, err := Detect(config)
	return config, m, err
}
