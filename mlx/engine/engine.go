package engine

const Version = "0.32.4"
