package checkpoint

import "github.com/ingotml/ingot/convert/gguf/vocab"

// texts makes the tokenizer's files.
func (s *set) texts() ([]File, error) {
	files, err := vocab.Files(s.files[0].header.Metadata)
	if err != nil {
		return nil, err
	}
	var out []File
	for _, f := range files {
		out = append(out, File(f))
	}
	return out, nil
}
