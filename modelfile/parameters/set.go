package parameters

import (
	"fmt"
	"strconv"

	"github.com/ingotml/ingot/internal/limits/jsonfit"
)

// Set holds the values of the parameters that a Modelfile, an image or a request sets. JSON names are those of
// Modelfiles. A request for another engine may set more, which is ignored.
type Set struct {
	Shared
	TypicalP        *float64 `json:"typical_p"`
	RepeatPenalty   *float64 `json:"repeat_penalty"`
	RepeatLastN     *int     `json:"repeat_last_n"`
	NumPredict      *int     `json:"num_predict"`
	NumCtx          *int     `json:"num_ctx"`
	NumKeep         *int     `json:"num_keep"`
	DraftNumPredict *int     `json:"draft_num_predict"`
}

// Shared are the parameters with the same names in OpenAI's API.
type Shared struct {
	Temperature      *float64 `json:"temperature"`
	TopK             *int     `json:"top_k"`
	TopP             *float64 `json:"top_p"`
	MinP             *float64 `json:"min_p"`
	PresencePenalty  *float64 `json:"presence_penalty"`
	FrequencyPenalty *float64 `json:"frequency_penalty"`
	Seed             *int64   `json:"seed"`
	Stop             Texts    `json:"stop"`
}

// Texts is a string or a list of strings in JSON.
type Texts []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Texts) UnmarshalJSON(b []byte) error {
	var one *string
	if jsonfit.Unmarshal(b, &one) == nil {
		if one != nil {
			*t = Texts{*one}
		}
		return nil
	}
	if b[0] != '[' {
		return jsonfit.Wrong(b, "a string or an array of strings")
	}
	return jsonfit.Unmarshal(b, (*[]string)(t))
}

// member returns where the set holds a parameter; nil: requests do not have it.
func (s *Set) member(name string) any {
	switch name {
	case "temperature":
		return &s.Temperature
	case "top_k":
		return &s.TopK
	case "top_p":
		return &s.TopP
	case "min_p":
		return &s.MinP
	case "typical_p":
		return &s.TypicalP
	case "presence_penalty":
		return &s.PresencePenalty
	case "frequency_penalty":
		return &s.FrequencyPenalty
	case "repeat_penalty":
		return &s.RepeatPenalty
	case "repeat_last_n":
		return &s.RepeatLastN
	case "seed":
		return &s.Seed
	case "num_predict":
		return &s.NumPredict
	case "num_ctx":
		return &s.NumCtx
	case "num_keep":
		return &s.NumKeep
	case "draft_num_predict":
		return &s.DraftNumPredict
	case "stop":
		return &s.Stop
	}
	return nil
}

// Standard returns the table's defaults, which are Ollama's.
func Standard() (s Set) {
	for _, p := range table {
		if p.Default != nil {
			_ = s.put(p.Name, p.Default) // a test holds that the types agree
		}
	}
	return s
}

// Of returns the set of an image's parameters, by their names in Modelfiles. Numbers may be of any type. Parameters
// that requests do not have are ignored.
func Of(params map[string]any) (s Set, err error) {
	for name, value := range params {
		if err := s.put(name, value); err != nil {
			return s, fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	return s, nil
}

func (s *Set) put(name string, value any) (err error) {
	switch to := s.member(name).(type) {
	case *Texts:
		list, ok := texts(value)
		if !ok {
			return fmt.Errorf("%v is not a list of texts", value)
		}
		*to = list
	case **float64:
		*to = new(float64)
		**to, err = strconv.ParseFloat(fmt.Sprint(value), 64)
	case **int:
		*to = new(int)
		**to, err = strconv.Atoi(fmt.Sprint(value))
	case **int64:
		*to = new(int64)
		**to, err = strconv.ParseInt(fmt.Sprint(value), 10, 64)
	}
	return err
}
