// The optimizer's state, of which each rank holds a part, as the whole tensors that checkpoints contain.
// Where a rank has some rows of a tensor, its name says which: "embedding.weight[0:100].mean".
#pragma once

#include <functional>
#include <string>

#include "calque/checkpoint/safetensors.h"
#include "calque/distributed/process_group.h"

namespace calque {

// Every rank's tensors, slices joined, sorted by name, on rank 0; nothing on the others.
NamedTensors collect_tensors(ProcessGroup& group, const NamedTensors& own);

// The opposite: fills each rank's tensors from what `read` returns on rank 0 for the name of the whole.
void distribute_tensors(ProcessGroup& group, const NamedTensors& own,
                        const std::function<torch::Tensor(const std::string& name)>& read);

}  // namespace calque
