package server

var specialSchemas = func() specials {
	out := specials{}
	for _, m := range []specials{paramsSchemas, coreSchemas, ollamaSchemas, openaiSchemas, anthropicSchemas} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}()
