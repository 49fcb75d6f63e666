#define INGOT_PORTABLE
#define INGOT_ISA portable
#include "cpu_attention_small_batch.h"
#include "cpu_attention_tile.h"

namespace ingot::cpu {

const AttentionKernels attention_portable = {portable::kPanel, portable::kChunk, portable::tile, portable::small_batch,
                                             portable::join, portable::pack};

}  // namespace ingot::cpu
