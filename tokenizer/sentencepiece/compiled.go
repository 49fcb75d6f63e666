package sentencepiece

import (
	"encoding/json"
	"errors"

	"github.com/ingotml/ingot/tokenizer/jsonfile"
)

// errHeader reports the header of a compiled form that no model has.
var errHeader = errors.New("not the header of a model")

// Header returns what a compiled form has of a model beside the vocabulary.
func (m *Model) Header() ([]byte, error) { return json.Marshal(m) }

// ReadHeader reads what Header returned: a model without Pieces.
func ReadHeader(data []byte) (*Model, error) {
	m := &Model{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, err
	}
	if m.Size < 1 || m.Size > jsonfile.MaxID || m.Unk < 0 || int(m.Unk) >= m.Size || m.Kind != 1 && m.Kind != 2 {
		return nil, errHeader
	}
	next := int32(0)
	for _, p := range m.Marked {
		if p.ID < next || int(p.ID) >= m.Size || p.Kind <= Normal || p.Kind > Byte || !isText(p.Text) {
			return nil, errHeader
		}
		next = p.ID + 1
	}
	return m, nil
}
