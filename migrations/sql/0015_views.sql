-- For people: the objects with their manifests as jsonb, as the API shows them.
CREATE VIEW manifest AS
SELECT
    c.name AS cluster,
    o.kind,
    o.namespace,
    o.name,
    o.uid,
    o.revision,
    o.node_name,
    jsonb_set(convert_from(o.body, 'UTF8')::jsonb, '{metadata,resourceVersion}',
        to_jsonb(o.revision::text)) AS manifest
FROM object AS o
JOIN cluster AS c ON c.cluster_id = o.cluster_id;

CREATE VIEW node AS
SELECT cluster, name, uid, revision, manifest FROM manifest WHERE kind = 'Node';

CREATE VIEW namespace AS
SELECT cluster, name, uid, revision, manifest FROM manifest WHERE kind = 'Namespace';

CREATE VIEW pod AS
SELECT cluster, namespace, name, uid, revision, node_name, manifest
FROM manifest WHERE kind = 'Pod';
