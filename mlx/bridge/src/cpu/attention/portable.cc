#define INGOT_PORTABLE
#define INGOT_ISA portable
#include "cpu/attention/index.h"
#include "cpu/attention/small_batch.h"
#include "cpu/attention/tile.h"

namespace ingot::cpu {

const AttentionKernels attention_portable = {
    .panel = portable::kPanel,
    .chunk = portable::kChunk,
    .tile = portable::tile,
    .small_batch = portable::small_batch,
    .join = portable::join,
    .index_panel = portable::kIndexPanel,
    .index = portable::index_panels,
    .pack = portable::pack,
};

}  // namespace ingot::cpu
