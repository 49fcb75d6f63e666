package main

import (
	"bufio"
	"encoding/json"
	"os"
	"time"
)

// export writes what peer.py needs to do the same work: a line with the vocabulary, then one for each schema with the
// tokens of its instances and the times here.
type export struct {
	file *os.File
	out  *bufio.Writer
	json *json.Encoder
}

type exportedSchema struct {
	Name      string          `json:"name"`
	Schema    json.RawMessage `json:"schema"`
	Instances [][]int32       `json:"instances"`
	FirstNS   int64           `json:"first_ns"` // from the schema's text to the first mask
	TokenNS   []int64         `json:"token_ns"` // of each further token of the instances: its mask, and accepting it
}

func newExport(path string, vocabulary [][]byte) (*export, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	e := &export{file: f, out: bufio.NewWriter(f)}
	e.json = json.NewEncoder(e.out)
	return e, e.json.Encode(map[string][][]byte{"tokens": vocabulary})
}

func (e *export) add(s *exportedSchema) error { return e.json.Encode(s) }

func (e *export) close() error {
	err := e.out.Flush()
	if err2 := e.file.Close(); err == nil {
		err = err2
	}
	return err
}

// token notes the time of one token; nil notes nothing.
func (s *exportedSchema) token(took time.Duration) {
	if s != nil {
		s.TokenNS = append(s.TokenNS, int64(took))
	}
}
