package ollama

// The parts of the package that its external tests use.
const MediaPrefix = mediaPrefix

type ManifestDoc = manifestDoc

var NameTexts = nameTexts
