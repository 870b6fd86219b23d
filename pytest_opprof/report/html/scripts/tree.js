// The call trees of both sides as one: each path of names once, with what either side has of it in a step.

// What torch puts between a module's call and its forward().
const WRAPPERS = /: Module\.(_wrapped)?_call_impl$/;

/**
 * Join two trees. Frames that only pass a call on are folded into their callers.
 * @returns Nodes, parents before children: name, parent, row, and for each side count and selfTime of a step,
 *   calls and time with all that is inside, and whether it is there at all.
 */
function joinedTree(base, head) {
  const nodes = [];
  const places = new Map();
  for (const [side, test] of [["base", base], ["head", head]]) {
    const steps = Math.max(test?.steps ?? 0, 1);
    const placeOf = [];
    for (const { parent, name, count, self_ns: selfTime } of test?.tree ?? []) {
      const above = parent < 0 ? -1 : placeOf[parent];
      if (above >= 0 && WRAPPERS.test(name)) {
        placeOf.push(above);
        nodes[above][side].selfTime += selfTime / steps;
        continue;
      }
      const path = `${above} ${name}`;
      if (!places.has(path)) {
        places.set(path, nodes.length);
        nodes.push({ name, parent: above, row: above < 0 ? 0 : nodes[above].row + 1, children: [],
          base: empty(), head: empty() });
        if (above >= 0) {
          nodes[above].children.push(nodes.length - 1);
        }
      }
      const place = places.get(path);
      placeOf.push(place);
      const mine = nodes[place][side];
      mine.count += count / steps;
      mine.selfTime += selfTime / steps;
    }
  }
  addUp(nodes);
  return nodes;
}

function empty() {
  return { count: 0, selfTime: 0, calls: 0, time: 0 };
}

function addUp(nodes) {
  for (let number = nodes.length - 1; number >= 0; number -= 1) {
    const node = nodes[number];
    for (const side of [node.base, node.head]) {
      side.calls += side.count;
      side.time += side.selfTime;
    }
    if (node.parent >= 0) {
      const above = nodes[node.parent];
      for (const side of ["base", "head"]) {
        above[side].calls += node[side].calls;
        above[side].time += node[side].time;
      }
    }
  }
}

/** What a node adds to a drawing by itself: on both sides at once, the larger, so that what is gone has a place. */
function ownWeight(node, sides, weight) {
  const own = weight === "time" ? "selfTime" : "count";
  return Math.max(...sides.map((side) => node[side][own]));
}

/**
 * Where each node stands in a drawing, one under what called it.
 * @returns begin and end (0 to 1) by the node's number; nothing of nodes without a weight.
 */
function placesOf(nodes, sides, weight) {
  const weights = nodes.map((node) => ownWeight(node, sides, weight));
  for (let number = nodes.length - 1; number >= 0; number -= 1) {
    if (nodes[number].parent >= 0) {
      weights[nodes[number].parent] += weights[number];
    }
  }
  const whole = nodes.reduce((sum, node, number) => sum + (node.parent < 0 ? weights[number] : 0), 0) || 1;
  const places = new Map();
  let free = 0;
  const freeOf = new Map();
  nodes.forEach((node, number) => {
    if (!weights[number]) {
      return;
    }
    const begin = node.parent < 0 ? free : freeOf.get(node.parent);
    const end = begin + weights[number] / whole;
    places.set(number, { begin, end });
    freeOf.set(number, begin);
    if (node.parent < 0) {
      free = end;
    } else {
      freeOf.set(node.parent, end);
    }
  });
  return places;
}
