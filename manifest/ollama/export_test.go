package ollama

// MediaPrefix and the following are what the external tests of the package use.
const MediaPrefix = mediaPrefix

type ManifestDoc = manifestDoc

var NameTexts = nameTexts
