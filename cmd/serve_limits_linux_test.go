package cmd_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// hugePNG returns the header of a picture of 100,000 x 100,000 pixels, in a few dozen bytes.
func hugePNG() string {
	head := binary.BigEndian.AppendUint32(nil, 100_000)
	head = append(binary.BigEndian.AppendUint32(head, 100_000), 8, 2, 0, 0, 0)
	return base64.StdEncoding.EncodeToString(append(append([]byte("\x89PNG\r\n\x1a\n"), pngChunk("IHDR", head)...),
		pngChunk("IDAT", nil)...))
}

// TestServeHugePicture checks that a too large picture is rejected before it is decoded, and that the model keeps
// running.
func TestServeHugePicture(t *testing.T) {
	s := startServer(t, nil)
	ingot(t, s.home, "create", "sees", filepath.Join("..", "testdata", "models", "qwen3_5-vision"))
	for _, picture := range []string{hugePNG(), "AAAA"} {
		response := s.post(t, "/api/generate",
			fmt.Sprintf(`{"model":"sees","prompt":"x","raw":true,"images":[%q],"options":{"num_predict":1}}`, picture))
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != 400 || picture != "AAAA" &&
			!strings.Contains(string(text), "100000 x 100000 pixels") {
			t.Errorf("status %d: %s, %v", response.StatusCode, text, err)
		}
	}
	if last := s.whole(t, "/api/generate",
		`{"model":"sees","prompt":"x","raw":true,"options":{"num_predict":1}}`); last["done"] != true {
		t.Errorf("the next request: %v", last)
	}
}
