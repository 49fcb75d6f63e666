package openai

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/ingotml/ingot/server/servertest"
)

func TestOpenAIEmbed(t *testing.T) {
	f := serve(t, nil)
	var got struct {
		Object string
		Data   []struct {
			Object    string
			Index     int
			Embedding json.RawMessage
		}
		Model string
		Usage struct {
			PromptTokens int `json:"prompt_tokens"`
			TotalTokens  int `json:"total_tokens"`
		}
	}
	ask := func(body string) {
		t.Helper()
		status, text := f.Ask(t, "POST", "/v1/embeddings", body)
		if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 {
			t.Fatalf("%s: %d: %s, %v", body, status, text, err)
		}
	}
	ask(`{"model":"plain","input":[[5,6,7],[8]],"user":"x"}`)
	if got.Object != "list" || got.Model != "plain" || got.Usage.PromptTokens != 4 || got.Usage.TotalTokens != 4 ||
		len(got.Data) != 2 ||
		got.Data[1].Index != 1 || got.Data[1].Object != "embedding" || string(got.Data[0].Embedding) != "[3,5,0.1]" {
		t.Errorf("%+v", got)
	}
	ask(`{"model":"plain","input":[5,6],"encoding_format":"base64","dimensions":3}`)
	var text string
	if err := json.Unmarshal(got.Data[0].Embedding, &text); err != nil {
		t.Fatal(err)
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != 12 || math.Float32frombits(binary.LittleEndian.Uint32(b[8:])) != 0.1 {
		t.Errorf("%s: %v, %v", text, b, err)
	}
	if r := f.Parrot.LastEmbedded(t); !servertest.Same(r.Inputs, [][]int32{{5, 6}}) || r.Dimensions != 3 {
		t.Errorf("request: %+v", r)
	}
	ask(`{"model":"plain","input":["a lamp"],"encoding_format":"float"}`)
	ask(`{"model":"plain","input":"a lamp"}`)
	for body, want := range map[string]string{
		`{"model":"plain"}`:                                              "input is missing",
		`{"model":"plain","input":[]}`:                                   "input is missing",
		`{"model":"plain","input":""}`:                                   "input is missing",
		`{"model":"plain","input":[[]]}`:                                 "input 0 is empty",
		`{"model":"plain","input":[1.5]}`:                                "input[0]: a JSON number 1.5, want an integer",
		`{"model":"plain","input":"a","encoding_format":"int8"}`:         "must be float or base64",
		`{"model":"plain","input":"a","dimensions":0}`:                   "dimensions is 0",
		`{"model":"plain","input":[` + strings.Repeat("5,", 600) + `5]}`: "input 0 has 601 tokens, at most 512 are allowed",
	} {
		f.Has(t, "POST", "/v1/embeddings", body, 400, want)
	}
}
