"""Five hundred models on two thousand nodes: as many questions as for one."""

from time import process_time

from genai_finops.operations.windows import Schedule, Window
from tests.integration.lambdas.world import model, server
from tests.support import kubernetes_objects as objects

MODELS, NODES, PAGE = 500, 2000, 500


def test_a_reconcile_asks_for_five_lists_whatever_the_size_and_patches_what_differs(world):
    never = Schedule("UTC", (Window(frozenset({5}), 0, 60),))  # an hour on Saturdays
    world.start(models=tuple(model(f"m{number}", schedule=never if number < 3 else None) for number in range(MODELS)))
    for number in range(MODELS):
        world.api.put(
            objects.scaled_object(f"vllm-m{number}"),
            objects.deployment(f"vllm-m{number}", replicas=4, total=4, ready=4),
        )
    for number in range(NODES):
        world.api.put(objects.node(f"x{number}", instance=f"i-{number:017x}"))
        world.api.put(server(f"pod-{number}", f"m{number % MODELS}", node=f"x{number}"))
    world.requests = {f"m{number}": 0 for number in range(MODELS)}
    world.tick()
    assert len(world.patches()) == 3
    assert len(world.lists()) == 10
    world.api.requests.clear()
    started = process_time()
    world.tick()
    print(f"{process_time() - started:.2f} s of CPU, servers and all")
    assert len(world.lists()) == 5
    pages = [request for request in world.api.asked("list") if "continue" in request.query]
    assert len(pages) <= (NODES + 1) // PAGE + (NODES + 1) // PAGE + 3
    assert world.patches() == []
