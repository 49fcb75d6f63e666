package packed

// kinds are tried in this order; each only sees the tensors that earlier ones did not claim. The last one claims every
// tensor of an 8-bit float type.
var kinds = []Kind{
	{"mlx", findMLX},
	{"gptq", findGPTQ},
	{"awq", findAWQ},
	{"bitsandbytes", findBitsAndBytes},
	{"bitnet", findBitNet},
	{"hqq", findHQQ},
	{"compressed-tensors", findPacked},
	{"fp4", findFP4},
	{"fp8", findFP8},
}
